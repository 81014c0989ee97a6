// Package guest holds what kernelvm and the guest's init agree on.
package guest

// ConfigPath is where init finds its Config in the guest.
const ConfigPath = "/kernelvm.json"

// ExitMarker starts the console line that carries the program's exit code.
const ExitMarker = "E2E-EXIT: "

// Config tells the guest's init what to do.
type Config struct {
	Modules []string // kernel modules in loading order
	Program string
	Args    []string
}
