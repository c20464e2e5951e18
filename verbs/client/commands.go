// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// commands are the commands that the client does not just pass to the service.
var commands = provider.TableOf(
	provider.Grants(provider.RegMR, (*Client).regMR),
	provider.Gives(provider.CreateCompChannel, (*Client).createCompChannel),
	provider.Grants(provider.CreateCQ, (*Client).createCQ),
	provider.Grants(provider.ResizeCQ, (*Client).resizeCQ),
	provider.Does(provider.DestroyCQ, (*Client).destroyCQ),
	provider.Grants(provider.OpenXRCD, (*Client).openXRCD),
	provider.Gives(provider.CreateEventChannel, (*Client).createEventChannel),
)

// pass passes a command to the service.
func pass[Q, G any](c *Client, command provider.Command[Q, G], request Q) (grant G, err error) {
	err = c.pass(context.Background(), command.Code, &request, &grant)
	return grant, err
}

// regMR returns an error: the service cannot access the program's memory.
func (c *Client) regMR(provider.RegMRRequest) (provider.MRGrant, error) {
	return provider.MRGrant{}, fmt.Errorf("%w: the service cannot access the program's memory; AllocMR allocates memory that both can access", verbs.ErrUnsupported)
}

// Counters implements provider.CounterReader.
func (c *Client) Counters() (all []verbs.Counter, err error) {
	err = c.pass(context.Background(), proto.Counters.Code, &proto.None{}, &all)
	return all, err
}
