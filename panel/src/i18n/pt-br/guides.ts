import type { Words } from '../en.ts'

export const guides: Words['guides'] = {
  title: 'Guias',
  about: 'Como receber eventos, o que os códigos significam e como operar o Pombal.',
  open: 'Abrir os guias',
  inEnglish: 'Os guias estão em inglês.',
  webhooks: 'Guia (em inglês): receber eventos e verificar assinaturas',
  errors: 'Guia (em inglês): o que os códigos significam',
  situations: 'Guia (em inglês): o que o WhatsApp faz e o que ajuda',
  migrating: 'Guia (em inglês): trazer e levar números',
  alerts: 'Guia (em inglês): destinos e regras',
  names: {
    panel: 'O painel',
    webhooks: 'Receber por webhook',
    feed: 'Eventos sem webhook',
    errors: 'Códigos e o que fazer',
    limits: 'Limites',
    'whatsapp-situations': 'O que o WhatsApp faz',
    alerts: 'Alertas',
    operations: 'Operar o Pombal',
    migrating: 'Trazer e levar números',
    backup: 'Cópias de segurança',
    security: 'Segurança',
    metrics: 'Métricas',
    contract: 'Comportamento exato',
  },
}
