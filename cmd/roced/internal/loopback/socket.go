// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Socket returns the default socket of an in-memory network, in a directory that needs no privileges.
func Socket() string { return filepath.Join(runtimeDir(), "roced.sock") }

// runtimeDir returns the user's runtime directory, otherwise a per-user directory in the temporary directory.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "roced-"+strconv.Itoa(os.Getuid()))
}

// IsOwn reports whether the directory of a socket belongs to the user or to root. Otherwise a user that can
// create directories beside the user's, as in /tmp, could serve the user's programs. A missing directory
// contains no socket.
func IsOwn(socket string) bool {
	var stat unix.Stat_t
	return unix.Lstat(filepath.Dir(socket), &stat) != nil || stat.Uid == 0 || int(stat.Uid) == os.Geteuid()
}
