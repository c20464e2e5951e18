// SPDX-License-Identifier: Apache-2.0

//go:build !cards

package xsk

// poison does nothing, except in the tests with network cards (build tag cards).
func (*Socket) poison(_, _ uint64) {}
