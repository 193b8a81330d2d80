export const COMMANDS: Readonly<Record<string, { source: string; isServer?: boolean; summary: string }>>
export const USAGE: string
