"""Clusters without Docker: the control plane and the systems under test are processes of this
host, nodes and pods are played by kwok."""

from clusters.providers.embedded.provider import EmbeddedProvider

__all__ = ["EmbeddedProvider"]
