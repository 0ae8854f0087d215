"""Memories elsewhere: dataset repositories on the Hugging Face Hub, and object stores."""
