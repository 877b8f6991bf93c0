package gatetest
