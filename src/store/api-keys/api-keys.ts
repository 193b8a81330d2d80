import type { Scope } from '../../domain/access.ts'
import type { InstanceId } from '../../domain/ids.ts'

/** A named key of an instance, in addition to its token. */
export interface ApiKey {
  id: string
  name: string
  /** The first characters of the key. */
  prefix: string
  scopes: readonly Scope[]
  createdAt: number
  /** Null: never. */
  expiresAt: number | null
  /** The last recorded use. It is at most a minute behind, and a crash loses the uses of the last minute. */
  lastUsedAt: number | null
}

export interface NewApiKey extends Omit<ApiKey, 'createdAt' | 'lastUsedAt'> {
  instanceId: InstanceId
  digest: Uint8Array
}

export interface ApiKeys {
  /** `full`: the instance has `MAX_API_KEYS` keys. Null if there is no such instance. */
  create(key: NewApiKey, now: number): Promise<ApiKey | 'full' | null>
  /** Newest first, including expired keys. Null if there is no such instance. */
  list(instanceId: InstanceId): Promise<ApiKey[] | null>
  /** Takes effect immediately on every node. False if the instance has no such key. */
  revoke(instanceId: InstanceId, id: string): Promise<boolean>
}
