# requires: supergateway@4.0.0
source "$FOREIGN/bridge" supergateway --streamableHttp "$1"
