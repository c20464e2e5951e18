// SPDX-License-Identifier: Apache-2.0

// Package hostile tests the responses of a provider.Provider to a misbehaving client: handles that it does not own
// (handle.go), parameters in their whole range (command.go, idcommand.go), and random writes to queues in shared memory
// (scribble.go). Tests is run by verbstest.Run.
package hostile
