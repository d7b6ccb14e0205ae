terraform import sless_trigger.orders_http shop/orders-http
