# requires: mcporter@0.12.3
echo "$(mcporter list "$1" --allow-http | grep -oE '[0-9]+ tools' | cut -d' ' -f1)" \
    "$(mcporter call "$1.everything_echo" message=hi --allow-http)"
