// Search needs a worker, and browsers start none for pages opened from disk. There, a hidden frame does a worker's job.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      // Inside a worker, importScripts loads at once and postMessage goes to whoever made the worker.
      inside.importScripts = (...urls) => Promise.all(urls.map((from) => this._load(inside, from)));
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this._ready = this._load(inside, url);
      this._inside = inside;
    }

    postMessage(data) {
      this._ready.then(() => this._inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this._inside.frameElement.remove();
    }

    _load(inside, url) {
      return new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.body.append(script);
      });
    }
  };
}
