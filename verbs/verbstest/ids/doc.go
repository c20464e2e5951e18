// SPDX-License-Identifier: Apache-2.0

// Package ids tests connection ids (rdma_cm) of a provider.Provider, at the level of its commands: addresses and routes
// (address.go), states (state.go), requests and responses (connect.go, connection.go), the queue pairs of connections
// (connected.go), and groups (join.go). verbstest.Run runs Tests.
package ids
