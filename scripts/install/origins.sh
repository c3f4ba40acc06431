#!/usr/bin/env bash
# Installs the servers that tests read remote data from, from Debian (or Ubuntu): web servers, and Ceph's S3.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/packages.sh" install/origins \
  nginx-light apache2 radosgw ceph-mon ceph-osd
