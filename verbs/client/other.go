// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The service requires Linux. On other systems the names exist so that programs compile; connecting returns
// verbs.ErrUnsupported.

var errLinux = fmt.Errorf("%w: the service requires Linux", verbs.ErrUnsupported)

// DefaultPath is the service's socket.
const DefaultPath = "/run/roced/roced.sock"

// Client is a session on a device of the service.
type Client struct{ provider.Provider }

// Devices returns the names of the service's devices.
func Devices(string) ([]string, error) { return nil, errLinux }

// Dial opens a device of the service.
func Dial(_, _ string) (*Client, error) { return nil, errLinux }

// DialContext is Dial that ends when ctx is done.
func DialContext(context.Context, string, string) (*Client, error) { return nil, errLinux }

// ListDevices returns the service's devices.
func ListDevices(context.Context, string) ([]verbs.Device, error) { return nil, errLinux }

// WatchDevices reports additions and removals of the service's devices.
func WatchDevices(context.Context, string, verbs.DeviceClient) error { return errLinux }
