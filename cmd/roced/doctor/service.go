// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// errNoResponse reports a service that had not responded when doctor was interrupted.
var errNoResponse = errors.New("no response yet")

func checkService(f *facts) []finding {
	switch {
	case f.service == nil:
		return ok("service", "runs; devices: "+strings.Join(f.deviceNames(), ", "))
	case errors.Is(f.service, errNoResponse), errors.Is(f.service, os.ErrDeadlineExceeded):
		return report("service", warning, "does not respond", unit.Answering())
	case errors.Is(f.service, unix.EACCES):
		return report("service", warning, "runs, but this user has no access", "usermod -aG roced USER, then log in again")
	case errors.Is(f.service, unix.ENOENT), errors.Is(f.service, unix.ECONNREFUSED):
		return report("service", note, "not running", unit.Start()+", if programs should share devices")
	}
	return report("service", warning, f.service.Error(), unit.Log())
}

func (f *facts) deviceNames() (names []string) {
	for _, d := range f.devices {
		names = append(names, d.Name)
	}
	return names
}

// offers reports whether the service has a working device with that name.
func (f *facts) offers(name string) bool {
	return slices.ContainsFunc(f.devices, func(d daemon.Device) bool { return d.Name == name && d.Why == "" })
}

// holder returns the service's device on the interface, or "". Interface indexes are compared because another
// namespace may have an interface with the same name.
func (f *facts) holder() string {
	index := uint32(f.link.Attrs().Index)
	is := func(e verbs.GIDEntry) bool { return e.IfIndex == index }
	at := slices.IndexFunc(f.devices, func(d daemon.Device) bool {
		return d.Attr.Name == f.link.Attrs().Name && (len(d.GIDs) == 0 || slices.ContainsFunc(d.GIDs, is))
	})
	if at < 0 {
		return ""
	}
	return f.devices[at].Name
}
