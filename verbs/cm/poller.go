// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cm

import (
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
)

// poller requires Linux, as all devices do.
type poller struct{ file *os.File }

func newPoller() (*poller, error) {
	return nil, fmt.Errorf("%w: event channels need Linux", verbs.ErrUnsupported)
}

func (*poller) add(*os.File) error { return nil }
func (*poller) wait()              {}
