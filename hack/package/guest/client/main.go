// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/ud"
)

// messages is the number of messages.
const messages = 100

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "client SOCKET DEVICE")
		os.Exit(2)
	}
	if err := exchange(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func exchange(socket, device string) (err error) {
	session, err := client.Dial(socket, device)
	if err != nil {
		return err
	}
	c, err := verbs.Open(session)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range messages {
		if err := e.Send(ctx, e.LocalAddr(), fmt.Append(nil, i)); err != nil {
			return err
		}
		m, err := e.Recv(ctx)
		if err != nil {
			return err
		}
		if string(m.Data) != fmt.Sprint(i) {
			return fmt.Errorf("unexpected message %d: %q", i, m.Data)
		}
		m.Release()
	}
	fmt.Println(messages, "messages from", e.LocalAddr())
	return nil
}
