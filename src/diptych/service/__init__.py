"""Search for users: sentences and images in, described hits out; over HTTP and as a page."""
