// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/server"
	"github.com/roced/roced/verbs/ud"
)

// must is for examples: a program looks at its errors.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A program follows the service's devices: it is told of those that are there, and of those that come and go. It
// would open a session on one that comes, and close the session of one that goes. hca.WatchDevices does the same with
// the host's own interfaces.
func ExampleWatchDevices() {
	host := must(memnet.New(0).AddHost("eth0", netip.MustParseAddr("10.0.0.1")))
	card := must(hca.New(host, hca.WithoutInline()))
	defer card.Close()
	service := must(server.New(server.Config{PrivilegedGroup: -1})) // without a device
	defer service.Close()
	folder := must(os.MkdirTemp("", "roced"))
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "sock")
	go service.Serve(must(net.Listen("unixpacket", path)))

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond, func() { _ = service.SetDevices(card) }) // the administrator adds one
	err := client.WatchDevices(ctx, path, verbs.DeviceClient{
		Add: func(d verbs.Device) {
			session := must(verbs.Open(must(client.Dial(path, d.Name))))
			defer session.Close()
			fmt.Println(d.Name, "has come:", must(session.QueryPort(1)).State)
			_ = service.SetDevices() // and takes it away
		},
		Remove: func(d verbs.Device) {
			fmt.Println(d.Name, "has gone")
			cancel()
		},
	})
	fmt.Println(err)
	// Output:
	// eth0 has come: active
	// eth0 has gone
	// watch devices: context canceled
}

// service is a service with a device on an in-memory network. The host's own is at client.DefaultPath.
func daemon(name string) (path string, stop func()) {
	host := must(memnet.New(0).AddHost("eth0", netip.MustParseAddr("10.0.0.1")))
	card := must(hca.New(host, hca.WithoutInline()))
	s := must(server.New(server.Config{Devices: []server.Source{card}, PrivilegedGroup: -1}))
	folder := must(os.MkdirTemp("", "roced"))
	path = filepath.Join(folder, name)
	go s.Serve(must(net.Listen("unixpacket", path)))
	return path, func() {
		_ = s.Close()
		_ = card.Close()
		_ = os.RemoveAll(folder)
	}
}

// A program lists the service's devices, opens one, and uses it as it would a card of its own. Two
// programs on one device reach each other too.
func ExampleDial() {
	path, stop := daemon(filepath.Base(client.DefaultPath))
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	devices := must(client.Devices(path))
	fmt.Println(devices)

	left := must(verbs.Open(must(client.Dial(path, devices[0]))))
	defer left.Close()
	right := must(verbs.Open(must(client.Dial(path, devices[0]))))
	defer right.Close()

	receiver := must(ud.New(right, ud.Options{}))
	defer receiver.Close()
	sender := must(ud.Dial(ctx, left, receiver.LocalAddr(), ud.Options{}))
	defer sender.Close()
	if err := sender.Send(ctx, ud.Addr{}, []byte("hello")); err != nil {
		panic(err)
	}
	message := must(receiver.Recv(ctx))
	fmt.Printf("%s\n", message.Data)
	message.Release()
	// Output:
	// [eth0]
	// hello
}
