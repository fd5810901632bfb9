"""Where the value of a key comes from, for `fab explain`."""
