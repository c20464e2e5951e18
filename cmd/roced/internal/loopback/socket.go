package loopback

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
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

// IsOwn says whether a socket's folder belongs to the user, or to root: who may make folders beside the user's, as in
// /tmp, is not to serve the user's programs. A folder that is missing has nobody's socket.
func IsOwn(socket string) bool {
	var stat unix.Stat_t
	return unix.Lstat(filepath.Dir(socket), &stat) != nil || stat.Uid == 0 || int(stat.Uid) == os.Geteuid()
}
