package network

import (
	"fmt"

	"github.com/roced/roced/verbs"
)

// HostError wraps an error of the host in one of package verbs, as all errors of a session are.
func HostError(err error) error {
	if err == nil || verbs.KindOf(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", verbs.ErrHost, err)
}
