// SPDX-License-Identifier: Apache-2.0

// Package record writes the packets of several cards to one pcapng file: those of the hosts of an in-memory
// network, which are created and closed at run time. A packet between two hosts is recorded twice, as sent
// and as received; its comment has the host's name and the outcome.
package record
