"""What memories behind the GPUs buy for conversations that outgrow them."""
