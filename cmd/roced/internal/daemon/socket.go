package daemon

import (
	"os"

	"github.com/roced/roced/cmd/roced/internal/loopback"
	"github.com/roced/roced/verbs/client"
)

// NamedSocket is the socket that the environment names; empty if it does not. Programs in C look there too.
func NamedSocket() string { return os.Getenv("ROCED_SOCKET") }

// DefaultSocket is the socket that is meant where none is named: the environment's, the installed service's, or that of
// the user's own roced run --loopback, where there is no other.
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
