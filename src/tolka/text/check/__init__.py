"""What `mt-train --check` finds in a corpus."""
