"""What a share of prompts that is found in the cache is worth."""
