export const COMPILED: string
export const STATE_FILE: string
export function stateOfSources(): string
export function isCompiled(): boolean
