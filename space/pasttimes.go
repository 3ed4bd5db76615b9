package space
