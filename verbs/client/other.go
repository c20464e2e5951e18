//go:build !linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The service needs Linux. Elsewhere there are the names that programs use, so that they compile; what connects is
// verbs.ErrUnsupported.

var errLinux = fmt.Errorf("%w: the service needs Linux", verbs.ErrUnsupported)

// DefaultPath is the service's socket.
const DefaultPath = "/run/roced/roced.sock"

// Client is a session on a device of the service.
type Client struct{ provider.Provider }

// Devices lists the names of the service's devices.
func Devices(string) ([]string, error) { return nil, errLinux }

// Dial opens a device of the service.
func Dial(_, _ string) (*Client, error) { return nil, errLinux }

// DialContext is Dial that gives up when ctx is done.
func DialContext(context.Context, string, string) (*Client, error) { return nil, errLinux }

// ListDevices lists the service's devices.
func ListDevices(context.Context, string) ([]verbs.Device, error) { return nil, errLinux }

// WatchDevices tells of the service's devices as they come and go.
func WatchDevices(context.Context, string, verbs.DeviceClient) error { return errLinux }
