import type { Words } from '../en.ts'

export const webhook: Words['webhook'] = {
  title: 'Webhook',
  lead: 'Para onde o Pombal envia os eventos.',
  url: 'URL',
  urlHint:
    'O Pombal posta aqui eventos assinados: mensagens recebidas, enviadas, entregues, lidas e que falharam. Recomenda-se https.',
  urlWrong: 'Digite uma URL completa, começando com http:// ou https://',
  save: 'Salvar',
  saved: 'Salvo. Os novos eventos vão para lá.',
  boundNote: 'Uma URL nova vale para os novos eventos. Os pendentes ainda vão para a antiga.',
  test: 'Enviar um evento de teste',
  testHint: 'Posta um evento assinado do tipo webhook.test e mostra a resposta. Não fica no log e não se repete.',
  testing: 'Esperando a resposta…',
  testOk: 'O evento de teste foi recebido.',
  testFailed: 'O evento de teste não foi entregue.',
  testStatus: status => `Ele respondeu ${status}. Só 2xx conta como recebido.`,
  testPosted: 'O que foi postado',
  seeWaiting: 'Ver os eventos pendentes',
  seeGivenUp: 'Ver o motivo e reenviar',
  rotate: 'Novo segredo',
  rotateTitle: 'Criar um novo segredo?',
  rotateText: 'A partir de agora todos os eventos são assinados com o novo segredo, também os que já estão na fila.',
  rotateStandard: 'Receptores que conferem webhook-signature têm 24 h: por esse tempo ele leva as duas assinaturas.',
  rotateService:
    'Receptores que conferem X-Service-Signature precisam do novo segredo de imediato: faça antes com que aceitem qualquer um dos dois.',
  overlap: 'O segredo anterior também assina até',
  overlapText: 'Troque o segredo no seu receptor antes disso.',
  rotated: 'Os eventos agora são assinados com um novo segredo. Atualize seu receptor.',
  verify: 'Conferir a assinatura',
  verifyHint:
    'Pronto para colar. Todos recebem o corpo bruto, antes de ser interpretado, e aceitam os dois segredos durante a troca.',
}
