import type { Simulator, SimulatorErrorCode, SimulatorOptions, StorageChange } from './types.ts'

/** The calls that a thread answers. */
export type SimulatorMethod = Exclude<keyof Simulator, 'url'>

export interface ThreadOptions {
  options: Omit<SimulatorOptions, 'storage' | 'log'>
  hasStorage: boolean
}

/** What the calling thread says to the network's. */
export type CallMessage =
  | { kind: 'call'; id: number; method: SimulatorMethod; args: unknown[] }
  | { kind: 'stored'; id: number; value: ReadonlyMap<string, Uint8Array> | null }
  | { kind: 'notStored'; id: number; message: string }

/** What the network's thread says to the calling one. */
export type ThreadMessage =
  | { kind: 'ready'; url: string }
  | { kind: 'log'; line: string }
  | { kind: 'result'; id: number; value: unknown }
  | { kind: 'refused'; id: number; code: SimulatorErrorCode; message: string }
  | { kind: 'read'; id: number; scope: string }
  | { kind: 'write'; id: number; scope: string; changes: readonly StorageChange[] }
