"""What people see: values and events as text; nothing here prints, the fabfile does."""
