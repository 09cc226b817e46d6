"""What can be learned by counting: counted models, and all plans on them, from value iteration to shortest ways."""
