import { createHmac } from 'node:crypto'
import type { Settings } from './config.ts'

/**
 * The settings that nodes compare, by name. All nodes must share them. Sandboxes and the connection to WhatsApp may
 * differ. The database and the master key need no comparison: with another database a node does not see the others, and
 * with another master key it does not start. The mail server, the name of the OpenID Connect provider and the client's
 * secret there are not compared, but must be shared too.
 */
export function comparedSettings(settings: Settings, adminKey: string): Record<string, string> {
  const { webhook, media, oidc } = settings
  const values: Record<string, unknown> = {
    ADMIN_KEY: createHmac('sha256', adminKey).update('pombal shared settings').digest('hex').slice(0, 16),
    PUBLIC_URL: settings.publicUrl?.href ?? null,
    RATE_LIMIT_PER_MINUTE: settings.ratePerMinute,
    NUMBER_CHECKS_PER_DAY: settings.numberChecksPerDay,
    MESSAGE_TTL_HOURS: settings.messageTtlMs / 3_600_000,
    RETENTION_DAYS: settings.retentionMs / 86_400_000,
    WEBHOOK_TIMEOUT_MS: webhook.timeoutMs,
    WEBHOOK_RETRY_DELAYS_MS: webhook.retryDelaysMs,
    WEBHOOK_ALLOWED_NETWORKS: webhook.allowedNetworks,
    // Not a setting: it follows from HOST, PUBLIC_URL and NODE_ENV.
    WEBHOOKS_TO_PRIVATE_NETWORKS: webhook.privateAllowed ? 'allowed' : 'refused',
    PROXY_ALLOWED_NETWORKS: settings.proxyNetworks,
    MEDIA_URL: media.place,
    MEDIA_RETENTION_DAYS: media.retentionMs / 86_400_000,
    MEDIA_QUOTA_MB: media.quotaBytes / 1_048_576,
    MEDIA_MB_PER_MINUTE: media.bytesPerMinute / 1_048_576,
    MEDIA_ALLOWED_NETWORKS: media.allowedNetworks,
    OIDC_ISSUER: oidc?.issuer.href ?? null,
    OIDC_CLIENT_ID: oidc?.clientId ?? null,
  }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, shown(value)]))
}

function shown(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
