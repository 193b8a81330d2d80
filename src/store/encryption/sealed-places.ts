import type { InstanceId } from '../../domain/ids.ts'

// A sealed value authenticates the identity of its row: a value that was copied into another row does not open.

/** The place of the current and of the previous webhook secret. */
export function webhookSecretPlace(id: InstanceId): string {
  return `instances:${id}:webhook_secret`
}

export function credentialPlace(instanceId: InstanceId, type: string, id: string): string {
  return `credentials:${instanceId}:${type}:${id}`
}
