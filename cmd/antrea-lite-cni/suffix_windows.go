package main

// suffixes are what may follow a plugin's name in a file name.
func suffixes() []string { return []string{".exe", ""} }
