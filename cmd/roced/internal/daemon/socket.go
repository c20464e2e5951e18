// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/verbs/client"
)

// NamedSocket returns the socket of the environment, or "". Programs in C use it as well.
func NamedSocket() string { return os.Getenv("ROCED_SOCKET") }

// DefaultSocket returns the default socket: that of the environment, of the installed service, or, if there
// is no other, of the user's own roced run --loopback.
func DefaultSocket() string {
	if named := NamedSocket(); named != "" {
		return named
	}
	if own := loopback.Socket(); !exists(client.DefaultPath) && exists(own) && loopback.IsOwn(own) {
		return own
	}
	return client.DefaultPath
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
