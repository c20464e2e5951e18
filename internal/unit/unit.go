// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"os"
	"path/filepath"
)

// name is the unit of the service.
const name = "roced.service"

// folders are the directories of units, as in systemd.unit(5).
var folders = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// Start returns advice on starting the service.
func Start() string {
	return advise("/", "systemctl start roced", "start it with roced run --device INTERFACE")
}

// Running returns advice on a service that cannot be reached.
func Running() string {
	return "check that it is running: " + advise("/", "systemctl status roced", "start it with roced run --device INTERFACE")
}

// Answering returns advice on a service that does not respond.
func Answering() string {
	return "check whether it is stopped: " + advise("/", "systemctl status roced", "ps -C roced")
}

// Log returns advice on finding the log of the service.
func Log() string {
	return advise("/", "journalctl -u roced", "see its standard error")
}

// advise returns managed if systemd is running (sd_booted(3)) and has the unit, below a root directory,
// otherwise plain.
func advise(root, managed, plain string) string {
	if _, err := os.Stat(filepath.Join(root, "/run/systemd/system")); err != nil {
		return plain
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder, name)); err == nil {
			return managed
		}
	}
	return plain
}
