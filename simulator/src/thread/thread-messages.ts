import type { MediaAccess, Simulator, SimulatorErrorCode, SimulatorOptions, StorageChange } from '../types.ts'

/** The calls that a thread accepts. */
export type SimulatorMethod = Exclude<keyof Simulator, 'url' | 'media'>

export interface ThreadOptions {
  options: Omit<SimulatorOptions, 'storage' | 'log'>
  hasStorage: boolean
}

/** From the calling thread to the network's thread. */
export type CallMessage =
  | { kind: 'call'; id: number; method: SimulatorMethod; args: unknown[] }
  | { kind: 'stored'; id: number; value: ReadonlyMap<string, Uint8Array> | null }
  | { kind: 'notStored'; id: number; message: string }

/** From the network's thread to the calling thread. */
export type ThreadMessage =
  | { kind: 'ready'; url: string; media: MediaAccess }
  | { kind: 'log'; line: string }
  | { kind: 'result'; id: number; value: unknown }
  | { kind: 'refused'; id: number; code: SimulatorErrorCode; message: string }
  | { kind: 'read'; id: number; scope: string }
  | { kind: 'write'; id: number; scope: string; changes: readonly StorageChange[] }
