// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// judged is a Provider that checks each error of another: it must be one of package verbs.
type judged struct {
	provider.Provider
	t testing.TB
}

// runnable is a judged Provider whose card is driven by programs.
type runnable struct {
	led
	provider.Progressor
}

// led is a judged Provider whose card a waiting program can drive.
type led struct {
	judged
	provider.Leader
}

// remote is a judged Provider whose card runs in another process.
type remote struct {
	led
	provider.Spinner
}

func Judge(t testing.TB, p provider.Provider) provider.Provider {
	j := judged{p, t}
	leader, leads := p.(provider.Leader)
	progress, runs := p.(provider.Progressor)
	spinner, spins := p.(provider.Spinner)
	switch {
	case runs && leads:
		return runnable{led{j, leader}, progress}
	case leads && spins:
		return remote{led{j, leader}, spinner}
	case leads:
		return led{j, leader}
	case runs:
		t.Fatal("the Provider implements Progressor without Leader, which Judge does not support")
	}
	return j
}

func (j judged) judge(command string, err error) error {
	if err != nil && verbs.KindOf(err) == nil {
		j.t.Errorf("%s: %v is not an error of package verbs", command, err)
	}
	return err
}

func (j judged) Claim() error { return j.judge("Claim", j.Provider.Claim()) }
func (j judged) Err() error   { return j.judge("Err", j.Provider.Err()) }

// Do implements provider.Provider.
func (j judged) Do(ctx context.Context, code provider.Code, request, grant any) error {
	return j.judge(code.Name, j.Provider.Do(ctx, code, request, grant))
}

// GetAsyncEvent may also return the error of its context.
func (j judged) GetAsyncEvent(ctx context.Context) (provider.EventReport, error) {
	report, err := j.Provider.GetAsyncEvent(ctx)
	if ended := ctx.Err(); err != nil && ended != nil && errors.Is(err, ended) {
		return report, err
	}
	return report, j.judge("GetAsyncEvent", err)
}

// Counters implements provider.CounterReader, with ErrUnsupported if the Provider does not implement it.
func (j judged) Counters() ([]verbs.Counter, error) {
	reader, is := j.Provider.(provider.CounterReader)
	if !is {
		return nil, verbs.ErrUnsupported
	}
	all, err := reader.Counters()
	return all, j.judge("Counters", err)
}
