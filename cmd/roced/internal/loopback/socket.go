package loopback

import (
	"os"
	"path/filepath"
	"strconv"
)

// Socket is where programs connect to a network in memory by default: a place that needs no privilege.
func Socket() string { return filepath.Join(runtimeDir(), "roced.sock") }

// runtimeDir is the user's, or a folder of the user's for temporary files.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "roced-"+strconv.Itoa(os.Getuid()))
}
