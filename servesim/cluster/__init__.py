"""The cluster: routers, pools, transfers, clients."""
