"""Learning the weights of a policy from a workload."""
