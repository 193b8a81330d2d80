import type { Guide } from '../../pages/guides/names.ts'

export const guides = {
  title: 'Guides',
  about: 'How to receive events, what the codes mean, and how to run Pombal.',
  open: 'Open the guides',
  inEnglish: 'The guides are in English.',
  webhooks: 'Guide: receive events and verify signatures',
  errors: 'Guide: what the codes mean',
  situations: 'Guide: what WhatsApp does, and what helps',
  migrating: 'Guide: moving numbers in and out',
  alerts: 'Guide: targets and rules',
  names: {
    panel: 'The panel',
    webhooks: 'Webhooks',
    feed: 'Events without a webhook',
    errors: 'Codes and what to do',
    limits: 'Limits',
    'whatsapp-situations': 'What WhatsApp does',
    alerts: 'Alerts',
    operations: 'Running Pombal',
    migrating: 'Moving numbers in and out',
    backup: 'Backups',
    security: 'Security',
    metrics: 'Metrics',
    contract: 'Exact behaviour',
  } satisfies Record<Guide, string>,
}
