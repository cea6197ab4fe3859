package relay

const canAwaitReset = true
