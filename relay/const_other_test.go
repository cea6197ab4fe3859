//go:build !linux

package relay

const canAwaitReset = false
