import type { InstanceId } from '../../domain/ids.ts'

// What stands in a sealed value's row is authenticated with it: a value that was copied into another row does not open.

/** Of a webhook secret, the present and the previous one alike. */
export function webhookSecretPlace(id: InstanceId): string {
  return `instances:${id}:webhook_secret`
}

export function credentialPlace(instanceId: InstanceId, type: string, id: string): string {
  return `credentials:${instanceId}:${type}:${id}`
}
