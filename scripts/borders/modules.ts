import type { Module } from './find-violations.ts'

export const MODULES: readonly Module[] = []
