// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Kind is the kind of the devices in CDI and the name of the Kubernetes resource.
const Kind = "roced.dev/verbs"

// Folders of the socket and the libraries in a container. Those for musl have their own folder. glibc's loader uses the
// first folder of librarySearch, and musl's the last one, since ; is no separator for it.
const (
	socketInside    = "/run/roced"
	librariesInside = "/usr/lib/roced"
	librarySearch   = librariesInside + ";" + librariesInside + ":" + librariesInside + "/musl"
)

// Env returns the environment variables by which programs find roced.
func Env() map[string]string {
	return map[string]string{"ROCED_SOCKET": socketInside + "/roced.sock", "LD_LIBRARY_PATH": librarySearch}
}

// Mount is a folder of the host that is mounted in a container, read-only.
type Mount struct{ Host, Container string }

// Device contains the name of a device and its folders on the host.
type Device struct {
	Name      string
	Socket    string // folder with the socket
	Libraries string // folder
}

// NewDevice returns the device of a service's socket with a name.
func NewDevice(service, name, libraries string) Device {
	return Device{name, filepath.Join(filepath.Dir(service), "sockets", name), libraries}
}

// ID returns the CDI name of the device.
func (d Device) ID() string { return Kind + "=" + d.Name }

// Mounts returns the folders to mount in the container.
func (d Device) Mounts() []Mount {
	return []Mount{{d.Socket, socketInside}, {d.Libraries, librariesInside}}
}

// Types of a CDI 0.5.0 specification, which containerd 1.7 and CRI-O 1.23 and later support.
type (
	specification struct {
		Version string         `json:"cdiVersion"`
		Kind    string         `json:"kind"`
		Devices []deviceInSpec `json:"devices"`
	}
	deviceInSpec struct {
		Name  string `json:"name"`
		Edits edits  `json:"containerEdits"`
	}
	edits struct {
		Env    []string      `json:"env"`
		Mounts []mountInSpec `json:"mounts"`
	}
	mountInSpec struct {
		Host      string   `json:"hostPath"`
		Container string   `json:"containerPath"`
		Options   []string `json:"options"`
	}
)

func (d Device) inSpec() deviceInSpec {
	s := deviceInSpec{Name: d.Name}
	env := Env()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		s.Edits.Env = append(s.Edits.Env, name+"="+env[name])
	}
	for _, m := range d.Mounts() {
		s.Edits.Mounts = append(s.Edits.Mounts, mountInSpec{m.Host, m.Container, []string{"ro", "nosuid", "nodev", "bind"}})
	}
	return s
}

// WriteSpecification writes the CDI specification of the devices. It replaces the file atomically.
func WriteSpecification(file string, devices ...Device) error {
	s := specification{Version: "0.5.0", Kind: Kind}
	for _, d := range devices {
		s.Devices = append(s.Devices, d.inSpec())
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temporary := file + ".new" // runtimes read only files with the suffix .json
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
