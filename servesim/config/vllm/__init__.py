"""What vLLM is told and what it says: its command line, its configuration file and its log."""
